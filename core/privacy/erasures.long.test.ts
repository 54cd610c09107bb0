import './erasure-return.test.ts'
import './erasures.test.ts'
