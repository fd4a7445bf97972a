"""Views in a browser: the Stage, the sandbox around each View, and the renderers that use them."""
