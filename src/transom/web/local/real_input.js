/** What the mouse and the keyboard need of the page with the Views: see `real_input.py`. */
(() => {
  const HELD = Symbol.for("transom.held");

  const frameOf = (key) =>
    document.getElementById(`view-${key}`)?.shadowRoot?.querySelector("iframe");

  /** Nothing but the View takes presses: it may scroll the page, and something else is there then. */
  function holdOthers(frame) {
    const held = (globalThis[HELD] ??= []);
    for (
      let at = frame;
      at && at !== document.body;
      at = at.parentElement ?? at.getRootNode().host
    ) {
      held.push(...[...at.parentNode.children].filter((each) => each !== at && !each.inert));
    }
    for (const each of held) each.inert = true;
  }

  function release() {
    for (const each of (globalThis[HELD] ?? []).splice(0)) each.inert = false;
  }

  function focus(key) {
    const frame = frameOf(key);
    if (!frame) return false;
    holdOthers(frame);
    frame.focus();
    return true;
  }

  /** Any frame can take the focus at any time, and the page around it does not know at once: keys
   * are for a View that is alone. */
  function hasFocus(key) {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return at === frameOf(key) && document.querySelectorAll("transom-view").length === 1;
  }

  /** Where a point of a frame is in the window, and whether the frame is in front there. If it is
   * not, and the page may be scrolled for it, the point is in the middle afterwards. All in one go:
   * each script that is run there takes several milliseconds. */
  function findPoint({ key, x, y, mayScroll }) {
    const frame = frameOf(key);
    if (!frame) return { isGone: true };
    holdOthers(frame);
    const { width, height } = frame.getBoundingClientRect();
    // Nor is a place inside that is no number.
    const isInside = 0 <= x && x < width && 0 <= y && y < height;
    if (!isInside) return { isInside };
    const find = () => {
      const { left, top } = frame.getBoundingClientRect();
      const point = { x: left + frame.clientLeft + x, y: top + frame.clientTop + y };
      let there = document.elementFromPoint(point.x, point.y);
      for (let inner; there?.shadowRoot; there = inner) {
        inner = there.shadowRoot.elementFromPoint(point.x, point.y);
        if (!inner || inner === there) break;
      }
      return { ...point, isInside, isInFront: there === frame };
    };
    const found = find();
    if (found.isInFront || !mayScroll) return { ...found, isScrolled: false };
    scrollBy({ top: found.y - innerHeight / 2, behavior: "instant" });
    return { ...find(), isScrolled: true };
  }

  return { release, focus, hasFocus, findPoint };
})()
