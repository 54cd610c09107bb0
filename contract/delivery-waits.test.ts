import { expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { waitOf } from './delivery-waits.ts'

it('a retry waits for its time, then for a worker', () => {
  expect([waitOf(DeliveryStatus.RETRY_SCHEDULED, 2, 1), waitOf(DeliveryStatus.RETRY_SCHEDULED, 1, 1)]).toEqual([
    'retry',
    'worker',
  ])
})
