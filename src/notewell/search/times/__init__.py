"""Time in text: a text and today come in, the days it names go out; `time_words` reads what they bound."""

LONGEST_QUERY = 1_000  # characters; what asks for a time is a question, not a pasted page
