// Runs visitor-session.test.ts with more messages in the history.
import './visitor-session.test.ts'
