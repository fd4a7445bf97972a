"""The host's side: one `Bridge` per View, and the `Host` over many servers and Views."""
