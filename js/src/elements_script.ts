/** The script that `transom.web.WebViews` serves: a page that includes it needs no other. */
import { connectElements } from "./views_bundle.js";

connectElements();
