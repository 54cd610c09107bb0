// Also simulates the failures that the regular run skips.
import './workbench.test.ts'
