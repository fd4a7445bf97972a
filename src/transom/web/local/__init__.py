"""Views on one user's machine: the Stage in their browser, or a Chromium without a window."""
