// Also runs the tests that the regular run skips.
import './search.test.ts'
