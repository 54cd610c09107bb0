import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { SubscriptionPurpose } from '#proto/lead/v1/subscription_pb.js'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { SelectField, TextField, Toggle } from '../ui/field.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { commonFields, destinationProblem, mappedFieldProblem } from './subscription-words.ts'

/** An empty text or a number from 1 to 1,000. */
const ratePattern = /^([1-9]\d{0,2}|1000)?$/
const notFoundPattern = /^(\d{1,2}|100)$/

const newUrlHint =
  'Receives a POST request for each lead or event. Must resolve to a public address; checked now and at each delivery. Stored encrypted; later, only scheme and host are shown.'
const changedUrlHint =
  'If empty, the present URL stays. Another scheme, host or port removes the custom headers; the signing secret stays.'

export interface SubscriptionInput {
  /** Empty to keep the present URL, which is never shown. */
  destinationUrl: string
  mappedFields: string[]
  automatic: boolean
  purpose: SubscriptionPurpose
  /** Maximum number of requests per second; 0 for no limit. */
  maxPerSecond: number
  /** Number of consecutive 404 answers that disable the subscription; 0 for never. */
  disableAfterNotFound: number
}

interface SubscriptionFormProps {
  initial: SubscriptionInput
  /**
   * Masked URL of the present destination. Undefined for a new subscription, whose purpose can be
   * chosen. It cannot be changed later.
   */
  present?: string
  action: string
  submit: (input: SubscriptionInput) => Promise<unknown>
  children?: ComponentChildren
}

/** Form with the editable fields of a lead subscription. */
export function SubscriptionForm({ initial, present, action, submit, children }: SubscriptionFormProps) {
  const isNew = present === undefined
  const { busy, failure, run } = useAction()
  const [destination, setDestination] = useState(initial.destinationUrl)
  const [mappedFields, setMappedFields] = useState(initial.mappedFields)
  const [automatic, setAutomatic] = useState(initial.automatic)
  const [purpose, setPurpose] = useState(initial.purpose)
  const [rate, setRate] = useState(initial.maxPerSecond === 0 ? '' : String(initial.maxPerSecond))
  const [notFound, setNotFound] = useState(String(initial.disableAfterNotFound))
  const [problem, setProblem] = useState<string>()
  const [rateProblem, setRateProblem] = useState<string>()
  const [notFoundProblem, setNotFoundProblem] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  const isOperational = purpose === SubscriptionPurpose.OPERATIONAL_EVENTS
  const input: SubscriptionInput = {
    destinationUrl: destination.trim(),
    mappedFields: isOperational ? [] : mappedFields,
    automatic: !isOperational && automatic,
    purpose,
    maxPerSecond: Number(rate),
    disableAfterNotFound: Number(notFound),
  }
  const isUnchanged = Object.entries(input).every(
    ([name, value]) => JSON.stringify(value) === JSON.stringify(initial[name as keyof SubscriptionInput]),
  )

  function save(event: Event) {
    event.preventDefault()
    const isKept = !isNew && input.destinationUrl === ''
    const urlProblem = isKept ? undefined : destinationProblem(input.destinationUrl)
    setProblem(urlProblem)
    const numberProblem = ratePattern.test(rate) ? undefined : 'Enter a whole number from 1 to 1,000, or nothing.'
    setRateProblem(numberProblem)
    const countProblem = notFoundPattern.test(notFound) ? undefined : 'Enter a whole number from 0 to 100.'
    setNotFoundProblem(countProblem)
    const invalid = form.current!.querySelector<HTMLElement>('input:invalid')
    if (invalid) invalid.focus()
    else if ([urlProblem, numberProblem, countProblem].every((each) => each === undefined))
      void run(() => submit(input))
  }

  const leadFields = (
    <>
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
    </>
  )

  return (
    <Card title="Destination">
      <form class="stack" onSubmit={save} ref={form} noValidate>
        <TextField
          label="Destination URL"
          hint={isNew ? newUrlHint : changedUrlHint}
          error={problem}
          inputMode="url"
          required={isNew}
          maxLength={2048}
          placeholder={present ?? 'https://crm.example.com/hooks/leads'}
          value={destination}
          onChange={setDestination}
        />
        {isNew && (
          <SelectField
            label="Receives"
            hint="Operational events report disabled subscriptions and deliveries that failed for good. This cannot be changed later."
            value={String(purpose)}
            options={[
              [String(SubscriptionPurpose.LEADS), 'Leads'],
              [String(SubscriptionPurpose.OPERATIONAL_EVENTS), 'Operational events'],
            ]}
            onChange={(value) => setPurpose(Number(value))}
          />
        )}
        {!isOperational && leadFields}
        <TextField
          label="Requests per second at most"
          hint="1 to 1,000. If empty, there is no limit."
          error={rateProblem}
          inputMode="numeric"
          value={rate}
          onChange={(value) => setRate(value.trim())}
        />
        <TextField
          label="Disable after this many 404 answers in a row"
          hint="1 to 100. With 0, a 404 only fails its delivery."
          error={notFoundProblem}
          inputMode="numeric"
          value={notFound}
          onChange={(value) => setNotFound(value.trim())}
        />
        <FailureNotice failure={failure} />
        <div class="line">
          <Button type="submit" kind="primary" disabled={busy || (!isNew && isUnchanged)}>
            {action}
          </Button>
          {children}
        </div>
      </form>
    </Card>
  )
}
