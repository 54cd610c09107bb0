// Also runs the tests that the regular run skips.
import './api-docs.test.ts'
