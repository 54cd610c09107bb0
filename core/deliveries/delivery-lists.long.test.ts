import './delivery-lists.test.ts'
