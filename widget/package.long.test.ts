// Also runs the tests that the regular run skips.
import './package.test.ts'
