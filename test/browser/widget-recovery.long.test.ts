// Also runs the tests that the regular run skips.
import './widget-recovery.test.ts'
