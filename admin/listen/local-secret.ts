import { createHmac } from 'node:crypto'

/** Returns a secret that is the same for each use of a service token and does not reveal it. */
export const localSecret = (token: string): string =>
  `whsec_${createHmac('sha256', token).update('webhooks of events listen').digest('base64')}`
