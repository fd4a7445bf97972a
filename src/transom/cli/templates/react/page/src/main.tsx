import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { List } from "./List";
import "./style.css";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <List />
  </StrictMode>,
);
