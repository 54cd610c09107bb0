// Leads become contacts of HubSpot: `npx node docs/examples/hubspot-relay.ts` (docs/crm.md).
// The names of the fields are those of HubSpot's contact properties: email, firstname, phone, …
import { CrmError, callCrm, serveRelay } from './crm-relay.ts'

const { HUBSPOT_TOKEN = '', HUBSPOT_URL = 'https://api.hubapi.com' } = process.env

serveRelay(async (email, properties, signal) => {
  const { body } = await callCrm(`${HUBSPOT_URL}/crm/v3/objects/contacts/batch/upsert`, {
    method: 'POST',
    headers: { authorization: `Bearer ${HUBSPOT_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ inputs: [{ idProperty: 'email', id: email, properties }] }),
    signal,
  })
  // A batch can be answered with 207 and have errors in place of results.
  const [contact] = body.results ?? []
  if (!contact) throw new CrmError(`HubSpot took no contact: ${body.errors?.[0]?.category}`, true)
  return { record: contact.id, created: contact.new }
})
