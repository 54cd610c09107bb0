import type { Collection } from 'mongodb'
import { isDuplicateKey } from './faults.ts'

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
}

export type LeadDocument = Omit<Lead, 'leadId'> & { _id: string }

export interface LeadStore {
  /** Keeps a lead; with an operation key that is taken already, the lead of that operation is returned instead. */
  insert(lead: Lead): Promise<Lead | undefined>
  find(leadId: string): Promise<Lead | undefined>
}

export function createLeadStore({ leads }: { leads: Collection<LeadDocument> }): LeadStore {
  return {
    async insert({ leadId, ...rest }) {
      try {
        await leads.insertOne({ _id: leadId, ...rest })
        return undefined
      } catch (error) {
        if (!isDuplicateKey(error) || rest.operationKey === undefined) throw error
        const found = await leads.findOne({ operationKey: rest.operationKey })
        if (!found) throw error
        return toLead(found)
      }
    },

    async find(leadId) {
      const found = await leads.findOne({ _id: leadId })
      return found ? toLead(found) : undefined
    },
  }
}

function toLead({ _id, ...rest }: LeadDocument): Lead {
  return { leadId: _id, ...rest }
}
