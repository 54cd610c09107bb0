// Also runs the tests that the regular run skips.
import './conversation.test.ts'
