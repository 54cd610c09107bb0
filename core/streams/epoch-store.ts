import type { Collection } from 'mongodb'

export interface EpochStore {
  /** Whether this is the epoch of an existing log, or of one that an erasure has removed. */
  isKnown(epoch: string): Promise<boolean>
}

type WithEpoch = { _id: string; epoch: string }
type WithEpochs = { _id: string; epochs?: string[] }

export function createEpochStore(collections: { conversations: unknown; erasures: unknown }): EpochStore {
  const conversations = collections.conversations as Collection<WithEpoch>
  const erasures = collections.erasures as Collection<WithEpochs>
  const idOnly = { projection: { _id: 1 } } as const

  return {
    async isKnown(epoch) {
      const found = [conversations.findOne({ epoch }, idOnly), erasures.findOne({ epochs: epoch }, idOnly)]
      return (await Promise.all(found)).some((each) => each !== null)
    },
  }
}
