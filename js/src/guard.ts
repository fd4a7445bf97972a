/**
 * The frame between a page and the sandbox of a View, on an origin that neither has. Of all that the
 * user presses, the browser tells this frame about what is pressed inside it, so its word shows that
 * the user has pressed something in the View. The View can neither forge that nor use a press that
 * was meant for the page.
 */
import { ELSEWHERE, FLAGS, LAY_OUT, PRESSED, type Pressed, type SandboxPlace } from "./messages.js";

const LASTS = 5000; // milliseconds that a browser counts a press as recent, at most

function start(): void {
  let pressedElsewhere = -Infinity; // after what was pressed in here
  window.addEventListener("message", ({ source, data, ports }: MessageEvent<unknown>) => {
    if (data === LAY_OUT) document.body.getBoundingClientRect(); // whoever says so: it changes nothing
    if (source !== window.parent) return;
    const { isActive } = navigator.userActivation;
    const now = performance.now();
    if (data === ELSEWHERE && isActive) pressedElsewhere = now;
    if (data === PRESSED) {
      const answer: Pressed = { isRecent: isActive, isLast: now - pressedElsewhere > LASTS };
      ports[0]?.postMessage(answer);
    }
    if (!isPlace(data)) return;
    // Another guard was pressed, which activates all of them: that is no press in this View.
    if (isActive) location.reload();
    else load(data);
  });
  const place = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (isPlace(place)) load(place);
}

const isPlace = (data: unknown): data is SandboxPlace => "src" in Object(data);

function load({ src, allow }: SandboxPlace): void {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", FLAGS);
  if (allow) frame.setAttribute("allow", allow);
  frame.src = src; // the policy of this page lets it be a sandbox only
  document.body.replaceChildren(frame);
}

if (window.parent !== window) start();
