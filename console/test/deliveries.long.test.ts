// Also runs the tests that the regular run skips.
import './deliveries.test.ts'
