// Also runs the tests that the regular run skips.
import './widget-scenarios.test.ts'
