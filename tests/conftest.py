import os

from hypothesis import settings

# A slow machine is not a failure, so examples have no deadline. In continuous integration the
# examples are the same in every run: a failure there is about the change, never about luck.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
