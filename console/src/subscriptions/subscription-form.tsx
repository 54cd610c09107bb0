import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { commonFields, destinationProblem, mappedFieldProblem } from './subscription-words.ts'

export interface SubscriptionInput {
  destinationUrl: string
  mappedFields: string[]
  automatic: boolean
}

interface SubscriptionFormProps {
  initial: SubscriptionInput
  action: string
  submit: (input: SubscriptionInput) => Promise<unknown>
  children?: ComponentChildren
}

/** Form with the editable fields of a lead subscription. */
export function SubscriptionForm({ initial, action, submit, children }: SubscriptionFormProps) {
  const { busy, failure, run } = useAction()
  const [destination, setDestination] = useState(initial.destinationUrl)
  const [mappedFields, setMappedFields] = useState(initial.mappedFields)
  const [automatic, setAutomatic] = useState(initial.automatic)
  const [problem, setProblem] = useState<string>()
  const input = { destinationUrl: destination.trim(), mappedFields, automatic }
  const { destinationUrl, mappedFields: fields, automatic: isAutomatic } = initial
  const isUnchanged =
    JSON.stringify(input) === JSON.stringify({ destinationUrl, mappedFields: fields, automatic: isAutomatic })

  function save(event: Event) {
    event.preventDefault()
    const urlProblem = destinationProblem(input.destinationUrl)
    setProblem(urlProblem)
    if (urlProblem === undefined) void run(() => submit(input))
  }

  return (
    <Card title="Destination">
      <form class="stack" onSubmit={save} noValidate>
        <TextField
          label="Destination URL"
          hint="Receives a POST request for each lead. Must resolve to a public address; checked now and at each delivery."
          error={problem}
          inputMode="url"
          required
          maxLength={2048}
          placeholder="https://crm.example.com/hooks/leads"
          value={destination}
          onChange={setDestination}
        />
        <EntryList
          label="Fields to send"
          hint="Names of lead fields. Other fields are not sent. If empty, only the lead’s reference is sent."
          placeholder="email"
          entries={mappedFields}
          problemOf={mappedFieldProblem}
          onChange={setMappedFields}
          suggestions={commonFields}
        />
        <Toggle
          label="Send leads automatically"
          hint="If off, leads are sent only on request."
          checked={automatic}
          onChange={setAutomatic}
        />
        <FailureNotice failure={failure} />
        <div class="line">
          <Button type="submit" kind="primary" disabled={busy || (initial.destinationUrl !== '' && isUnchanged)}>
            {action}
          </Button>
          {children}
        </div>
      </form>
    </Card>
  )
}
