"""Where documents come from: the workspace's notes. Files in, clean `Document`s out."""
