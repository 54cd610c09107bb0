// Also runs the tests that the regular run skips.
import './policies.test.ts'
