import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../mongodb/faults.ts'
import type { Lead } from './model.ts'

export type LeadDocument = Omit<Lead, 'leadId'> & {
  _id: string
  /**
   * Browsers and verified visitors of the lead's conversation. Set when the conversation is
   * removed.
   */
  visitorIds?: string[]
  /**
   * Set while the lead is being removed: the id of the removal, or true if its visitor is erased.
   * Queries then skip the lead.
   */
  erasing?: true | string
  /** Set until the event feed has the capture of the lead. */
  unannounced?: true
}

const notErasing = { erasing: { $exists: false } } as const

export interface LeadStore {
  /**
   * Stores a lead. If its id or operation key exists, returns the existing lead and stores nothing.
   */
  insert(lead: Lead): Promise<Lead | undefined>
  find(leadId: string): Promise<Lead | undefined>
  /**
   * Returns the ids of leads that have one of these contact hashes. The ids are sorted and greater
   * than `after`.
   */
  idsByContacts(contacts: string[], after: string, limit: number): Promise<string[]>
  findByOperation(operationKey: string): Promise<Lead | undefined>
  findMany(leadIds: string[]): Promise<Lead[]>
  /** Returns leads of these conversations, newest first, after the given one. */
  ofConversations(conversationIds: string[], limit: number, after?: Lead): Promise<Lead[]>
  /** Returns leads, or those with one of these contact hashes, newest first. */
  list(
    query: { workspaceId: string; contacts?: string[]; limit: number },
    before?: { createdAt: Date; id: string },
  ): Promise<Lead[]>
  /** Returns leads whose fan-out is not complete, because it failed or its process died. */
  pendingFanOut(before: Date, limit: number): Promise<Lead[]>
  markFannedOut(leadId: string): Promise<void>
}

export function createLeadStore({ leads }: { leads: Collection<LeadDocument> }): LeadStore {
  return {
    async insert({ leadId, ...rest }) {
      try {
        await leads.insertOne({ _id: leadId, ...rest, unannounced: true })
        return undefined
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
        const { operationKey } = rest
        const found = await leads.findOne(operationKey === undefined ? { _id: leadId } : { operationKey })
        if (!found) throw error
        return toLead(found)
      }
    },

    async find(leadId) {
      const found = await leads.findOne({ _id: leadId, ...notErasing })
      return found ? toLead(found) : undefined
    },

    async idsByContacts(contacts, after, limit) {
      const found = leads.find({ contacts: { $in: contacts }, _id: { $gt: after } }, { projection: { _id: 1 } })
      return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(({ _id }) => _id)
    },

    async findByOperation(operationKey) {
      const found = await leads.findOne({ operationKey })
      return found ? toLead(found) : undefined
    },

    async findMany(leadIds) {
      return (
        await leads.find({ _id: { $in: leadIds }, ...notErasing }, { batchSize: leadIds.length + 1 }).toArray()
      ).map(toLead)
    },

    async ofConversations(conversationIds, limit, after) {
      const found = leads.find({
        conversationId: { $in: conversationIds },
        ...notErasing,
        $or: after && [
          { createdAt: { $lt: after.createdAt } },
          { createdAt: after.createdAt, _id: { $lt: after.leadId } },
        ],
      })
      return (await found.sort({ createdAt: -1, _id: -1 }).limit(limit).toArray()).map(toLead)
    },

    async list({ workspaceId, contacts, limit }, before) {
      const found = leads
        .find({
          workspaceId,
          ...(contacts && { contacts: { $in: contacts } }),
          ...notErasing,
          $or: before && [
            { createdAt: { $lt: before.createdAt } },
            { createdAt: before.createdAt, _id: { $lt: before.id } },
          ],
        })
        .sort({ createdAt: -1, _id: -1 })
        .limit(limit)
      return (await found.toArray()).map(toLead)
    },

    async pendingFanOut(before, limit) {
      return (
        await leads
          .find({ 'fanOut.since': { $lte: before }, ...notErasing })
          .limit(limit)
          .toArray()
      ).map(toLead)
    },

    async markFannedOut(leadId) {
      await leads.updateOne({ _id: leadId }, { $unset: { fanOut: '' } })
    },
  }
}

function toLead({ _id, visitorIds: _, erasing: __, unannounced: ___, ...rest }: LeadDocument): Lead {
  return { leadId: _id, ...rest }
}
