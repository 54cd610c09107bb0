export interface Order {
  number: string
  placed: string
  lampId: string
  state: string
}

/** Somebody who has an account with the shop. */
export interface Customer {
  /** The shop's own name for them, and the assertion's subject. */
  id: string
  name: string
  email: string
  town: string
  plan: string
  orders: Order[]
}

/** The accounts to try. None has a password: nothing here is anybody's. */
export const customers: readonly Customer[] = [
  {
    id: 'customer_1042',
    name: 'Ada Berger',
    email: 'ada.berger@example.com',
    town: 'Graz',
    plan: 'Friend of the workshop',
    orders: [
      { number: 'NL-2291', placed: '14 November 2026', lampId: 'skog', state: 'In the workshop, ready on Thursday' },
      { number: 'NL-1876', placed: '2 March 2026', lampId: 'fjord', state: 'Delivered' },
    ],
  },
  {
    id: 'customer_1107',
    name: 'Jonas Lindqvist',
    email: 'jonas@example.net',
    town: 'Malmö',
    plan: 'Customer',
    orders: [{ number: 'NL-2304', placed: '18 November 2026', lampId: 'myr', state: 'On its way, with you on Monday' }],
  },
  {
    id: 'customer_1190',
    name: 'Mei Tanaka',
    email: 'mei.tanaka@example.org',
    town: 'Rotterdam',
    plan: 'Customer',
    orders: [],
  },
]

export const customerOf = (id: string | undefined): Customer | undefined =>
  customers.find((customer) => customer.id === id)
