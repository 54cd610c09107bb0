import type { SecretBox } from '../keys/secret-box.ts'
import type { LeadSubscription } from './model.ts'
import type { SealedDestination } from './secrets-model.ts'

/** The fields of a subscription's document that store its destination. */
type StoredDestination = Pick<LeadSubscription, 'destination'>

export const originOf = (url: string): string => new URL(url).origin

export const sealedDestination = (secretBox: Pick<SecretBox, 'seal'>, url: string): SealedDestination => ({
  sealed: secretBox.seal(url),
  origin: originOf(url),
})

const mask = '/••••'

/** Returns the text that is shown instead of the URL: its origin, with the rest masked. */
export const maskedDestination = ({ destination }: StoredDestination): string => destination.origin + mask

/** Whether a text is the masked form of a URL. It is not accepted as a URL. */
export const isMasked = (text: string): boolean => text.endsWith(mask)
