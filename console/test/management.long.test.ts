// Also runs the tests that the regular run skips.
import './management.test.ts'
