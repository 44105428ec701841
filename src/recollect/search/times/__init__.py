"""Time in text: a text and today come in, the days it names go out; `time_words` reads what they bound."""
