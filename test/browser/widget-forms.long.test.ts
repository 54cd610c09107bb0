// Also runs the tests that the regular run skips.
import './widget-forms.test.ts'
