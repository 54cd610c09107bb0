// Also runs the tests that the regular run skips.
import './start.test.ts'
