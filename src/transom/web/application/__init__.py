"""Views in a web application with many users, on one or several workers."""
