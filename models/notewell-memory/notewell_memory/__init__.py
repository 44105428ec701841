"""The files of the model `notewell-memory`; notewell finds them in this folder."""
