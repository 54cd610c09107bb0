import type { ComponentChildren } from 'preact'
import { sampleFields, sentFields } from '../../../contract/lead-fields.ts'
import { useConsole } from '../console-context.ts'
import { useInstallations } from '../installations/update.ts'
import { EntryList, Form, NameField, numberProblem, TextField, Toggle, useForm } from '../ui/form.tsx'
import { useLoad } from '../ui/load.tsx'
import { Card, Notice } from '../ui/page.tsx'
import { formFields, ofLead, PolicyFields, type PolicyInput } from './policy-fields.tsx'
import { commonFields, destinationProblem, fieldProblem } from './subscription-words.ts'

const newUrlHint =
  'Receives a POST request for each lead or event. Must resolve to a public address; checked now and at each delivery. Stored encrypted; later, only scheme and host are shown.'
const changedUrlHint =
  'If empty, the present URL stays. Another scheme, host or port removes the custom headers; the signing secret stays.'

export interface SubscriptionInput {
  name: string
  /** Empty to keep the present URL, which is never shown. */
  destinationUrl: string
  /** Names of lead fields. Other clients can send them under other names. */
  fields: string[]
  automatic: boolean
  policy: PolicyInput
  /** Maximum number of requests per second; empty for no limit. */
  maxPerSecond: string
  /** Number of consecutive 404 answers that disable the subscription; 0 for never. */
  disableAfterNotFound: string
}

interface SubscriptionFormProps {
  initial: SubscriptionInput
  /** Masked URL of the present destination. Undefined for a new subscription. */
  present?: string
  /** The names under which fields are sent, where they differ. */
  sentNames?: Record<string, string>
  /** True for an event hook, which has no lead fields. */
  isHook: boolean
  action: string
  submit: (input: SubscriptionInput, edited: Partial<SubscriptionInput>) => Promise<unknown>
  children?: ComponentChildren
}

export function SubscriptionForm(props: SubscriptionFormProps) {
  const { initial, present, sentNames = {}, isHook, action, submit, children } = props
  const isNew = present === undefined
  const installations = useInstallations()
  const form = useForm({
    start: initial,
    problemsOf: ({ destinationUrl, maxPerSecond, disableAfterNotFound, policy }) => ({
      destinationUrl: !isNew && destinationUrl.trim() === '' ? undefined : destinationProblem(destinationUrl.trim()),
      maxPerSecond: maxPerSecond.trim() === '' ? undefined : numberProblem(maxPerSecond, 1, 1_000),
      disableAfterNotFound: numberProblem(disableAfterNotFound, 0, 100),
      types: isHook && policy.types.length === 0 ? 'Choose at least one event.' : undefined,
    }),
    save: submit,
  })
  const { field, set } = form
  const { fields, policy } = form.draft

  const leadFields = (
    <>
      <EntryList
        label="Fields to send"
        hint="Names of lead fields. Other fields are not sent. If empty, only the lead’s reference is sent."
        placeholder="email"
        entries={fields}
        problemOf={fieldProblem}
        onChange={(changed) => set({ fields: changed })}
        suggestions={[...new Set([...formFields(installations), ...commonFields])]}
      />
      <ExampleEvent mappedFields={fields} sentNames={sentNames} />
      <Toggle
        label="Send leads automatically"
        hint="If off, leads are sent only on request."
        checked={form.draft.automatic}
        onChange={(automatic) => {
          // Another client may have chosen a policy without this event.
          const types = automatic ? [...new Set([ofLead, ...policy.types])] : policy.types
          set({ automatic, policy: { ...policy, types } })
        }}
      />
    </>
  )

  return (
    <Card title="Destination">
      <Form form={form} button={action} disabled={!isNew && !form.isChanged} actions={children}>
        <NameField {...field('name')} />
        <TextField
          label="Destination URL"
          hint={isNew ? newUrlHint : changedUrlHint}
          inputMode="url"
          required={isNew}
          maxLength={2048}
          placeholder={present ?? 'https://crm.example.com/hooks/leads'}
          {...field('destinationUrl')}
        />
        {!isHook && leadFields}
        <PolicyFields
          policy={policy}
          isHook={isHook}
          installations={installations}
          onChange={(changed) => set({ policy: changed })}
        />
        <TextField
          label="Requests per second at most"
          hint="1 to 1,000. If empty, there is no limit."
          inputMode="numeric"
          {...field('maxPerSecond')}
        />
        <TextField
          label="Disable after this many 404 answers in a row"
          hint="1 to 100. With 0, a 404 only fails its delivery."
          inputMode="numeric"
          {...field('disableAfterNotFound')}
        />
        {form.isChecked && form.problems.types && <Notice tone="warning">{form.problems.types}</Notice>}
      </Form>
    </Card>
  )
}

/** Shows an example with the newest lead that the operator may read, or with sample values. */
function ExampleEvent({ mappedFields, sentNames }: { mappedFields: string[]; sentNames: Record<string, string> }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => (await api.leads.listLeads({ limit: 1 })).leads, [])
  const lead = loaded.value?.[0]
  const mapping = { mappedFields, sentNames }
  const fields = lead ? sentFields(lead.fields, mapping) : sampleFields(mapping)
  const body = {
    eventType: ofLead,
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
