import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// A View is one HTML file: scripts and styles go into the page, which is ../page.html.
export default defineConfig({
  plugins: [react(), viteSingleFile()],
  build: { outDir: "..", emptyOutDir: false, rollupOptions: { input: "page.html" } },
});
