import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/*", "!js", "!js/**"] },
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Untrusted JSON is read as what it should be once it was checked.
      "@typescript-eslint/no-unsafe-type-assertion": "off",
      "@typescript-eslint/no-non-null-assertion": "off",
      // The public types say `any` where a page may do what it likes with a value.
      "@typescript-eslint/no-explicit-any": "off",
      // An async function without await: what it throws is a rejection.
      "@typescript-eslint/require-await": "off",
      // An event handler that calls something: `() => this.#draw()`.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
      "@typescript-eslint/no-namespace": ["error", { allowDeclarations: true }],
      // What a schema library gives, or a browser, may be falsy in more ways than null.
      "@typescript-eslint/prefer-nullish-coalescing": "off",
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowNullish: true },
      ],
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true },
      ],
    },
  },
  {
    files: ["js/test/**"],
    rules: {
      // `test` returns a promise that nobody waits for; messages that were posted may be anything.
      "@typescript-eslint/no-floating-promises": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
  { files: ["**/*.mjs"], ...tseslint.configs.disableTypeChecked },
);
