// Also runs the tests that the regular run skips.
import './suppressions.test.ts'
