import os

from hypothesis import settings

# A slow machine is not a failure, so examples have no deadline. In continuous integration the
# examples are the same in every run: a failure there is about the change, never about luck.
# HYPOTHESIS_PROFILE=thorough looks for longer.
settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local")
)
