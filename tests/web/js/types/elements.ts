// A page of an application that shows Views.
import { connectElements, type Approval, type ViewProblem } from "transom/elements";

connectElements();
connectElements(new URL("https://example.com/transom"));

const place: HTMLElement = document.createElement("transom-view");
place.setAttribute("view", "orders-1");

document.addEventListener("opened", ({ detail }) => {
  const { view, tool }: { view: string; tool?: string } = detail;
  console.log(view, tool);
});
document.addEventListener("approval", (event) => {
  const approval: Approval = event.detail;
  if (approval.kind !== "approve") return;
  event.preventDefault();
  const { tool, arguments: given, withdrawn } = approval;
  withdrawn.addEventListener("abort", () => console.log(tool, given));
  approval.answer("always");
  // @ts-expect-error: not an answer
  approval.answer("maybe");
});
place.addEventListener("closed", ({ detail: { view, reason } }) => console.log(view, reason));
document.addEventListener("problem", ({ detail }) => {
  const { kind, message, view }: ViewProblem = detail;
  console.log(kind === "connection" ? message : view);
});
document.addEventListener("recovered", ({ detail: { kind, view } }) => console.log(kind, view));
