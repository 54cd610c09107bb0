// Also runs the tests that the regular run skips.
import './administration.test.ts'
