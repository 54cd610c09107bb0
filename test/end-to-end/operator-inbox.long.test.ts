// Also runs the tests that the regular run skips.
import './operator-inbox.test.ts'
