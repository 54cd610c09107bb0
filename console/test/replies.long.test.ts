// Also runs the tests that the regular run skips.
import './replies.test.ts'
