// Also runs the tests that the regular run skips.
import './delivery-claim-cost.test.ts'
