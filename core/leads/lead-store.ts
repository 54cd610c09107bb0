import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'

/** What somebody left of themselves, or another service found out (specification, section 1). */
export interface Lead {
  leadId: string
  workspaceId: string
  source: string
  fields: Record<string, string>
  conversationId?: string
  formSubmissionId?: string
  createdAt: Date
  /** The form submission that it was captured from, as one logical operation. */
  operationKey?: string
  inputHash?: string
  /** Automatic subscriptions that have not got it yet. */
  fanOut?: { subscriptionIds: string[]; since: Date }
}

export type LeadDocument = Omit<Lead, 'leadId'> & { _id: string }

export interface LeadStore {
  /** Keeps a lead. When its id or its operation key is taken, returns the lead that has it and keeps nothing. */
  insert(lead: Lead): Promise<Lead | undefined>
  find(leadId: string): Promise<Lead | undefined>
  findMany(leadIds: string[]): Promise<Lead[]>
  /** The newest first. */
  list(workspaceId: string, limit: number, before?: { createdAt: Date; id: string }): Promise<Lead[]>
  /** Leads that somebody captured and then died, or could not send on. */
  notSentOn(before: Date, limit: number): Promise<Lead[]>
  sentOn(leadId: string): Promise<void>
}

export function createLeadStore({ leads }: { leads: Collection<LeadDocument> }): LeadStore {
  return {
    async insert({ leadId, ...rest }) {
      try {
        await leads.insertOne({ _id: leadId, ...rest })
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
      const found = await leads.findOne({ _id: leadId })
      return found ? toLead(found) : undefined
    },

    async findMany(leadIds) {
      return (await leads.find({ _id: { $in: leadIds } }, { batchSize: leadIds.length + 1 }).toArray()).map(toLead)
    },

    async list(workspaceId, limit, before) {
      const found = leads
        .find({
          workspaceId,
          ...(before && {
            $or: [{ createdAt: { $lt: before.createdAt } }, { createdAt: before.createdAt, _id: { $lt: before.id } }],
          }),
        })
        .sort({ createdAt: -1, _id: -1 })
        .limit(limit)
      return (await found.toArray()).map(toLead)
    },

    async notSentOn(before, limit) {
      return (
        await leads
          .find({ 'fanOut.since': { $lte: before } })
          .limit(limit)
          .toArray()
      ).map(toLead)
    },

    async sentOn(leadId) {
      await leads.updateOne({ _id: leadId }, { $unset: { fanOut: '' } })
    },
  }
}

function toLead({ _id, ...rest }: LeadDocument): Lead {
  return { leadId: _id, ...rest }
}
