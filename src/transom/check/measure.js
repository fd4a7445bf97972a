/** What a View's page shows, and how large that is: see `Measured` in `doctor.py`. */
(root) => {
  const page = root.ownerDocument;
  const view = page.defaultView;
  const MAX_ELEMENTS = 5000;
  const REPLACED = new Set(
    "img canvas svg video audio input button select textarea iframe object embed progress meter hr".split(
      " ",
    ),
  );
  const UNSEEN = new Set(["script", "style", "template", "noscript", "head", "title", "link"]);
  let shown = 0;
  let hidden = 0;
  let bottom = 0;
  let left = MAX_ELEMENTS;

  const hasText = (element) =>
    Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
  const isPainted = (style) =>
    style.backgroundImage !== "none" ||
    !/^(transparent|rgba\(.*, 0\))$/.test(style.backgroundColor);

  function look(element) {
    left -= 1;
    if (left < 0 || UNSEEN.has(element.localName)) return;
    const isBox = element !== root && element !== page.body;
    const style = view.getComputedStyle(element);
    if (REPLACED.has(element.localName) || hasText(element) || (isBox && isPainted(style))) {
      const { width, height, bottom: end } = element.getBoundingClientRect();
      const seen = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
      if (seen && width > 0 && height > 0) {
        shown += 1;
        bottom = Math.max(bottom, end + view.scrollY);
      } else hidden += 1;
    }
    for (const child of [...element.children, ...(element.shadowRoot?.children ?? [])]) look(child);
  }

  look(root);
  const clips = [root, page.body].some(
    (element) => element && /hidden|clip/.test(view.getComputedStyle(element).overflowY),
  );
  return {
    address: view.location.href,
    state: page.readyState,
    shown,
    hidden,
    bottom: Math.round(bottom),
    height: view.innerHeight,
    clips,
    text: (page.body?.innerText ?? "").trim().slice(0, 2000),
  };
};
