// Also scrolls back through more messages.
import './visitor-session.test.ts'
