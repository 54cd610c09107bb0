import { sampleFields, sentFields } from '../../../contract/lead-fields.ts'
import { useConsole } from '../console-context.ts'
import { useLoad } from '../ui/load.tsx'

interface ExampleEventProps {
  mappedFields: string[]
  sentNames: Record<string, string>
}

/**
 * Shows an example of the event that will be sent. It has the values of the newest lead that the
 * operator may read, or sample values if there is none.
 */
export function ExampleEvent({ mappedFields, sentNames }: ExampleEventProps) {
  const { api } = useConsole()
  const loaded = useLoad(async () => (await api.leads.listLeads({ limit: 1 })).leads, [])
  const lead = loaded.value?.[0]
  const mapping = { mappedFields, sentNames }
  const fields = lead ? sentFields(lead.fields, mapping) : sampleFields(mapping)
  const body = {
    eventType: 'lead.ready-for-delivery',
    id: 'dlv_…',
    contractVersion: '1.0',
    occurredAt: '…',
    data: { reference: lead?.leadId ?? 'lead_…', ...fields },
  }
  return (
    <details>
      <summary>{lead ? 'Example with your last lead' : 'Example with sample values'}</summary>
      <pre class="mono breakable">{JSON.stringify(body, null, 2)}</pre>
    </details>
  )
}
