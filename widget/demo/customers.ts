interface Order {
  number: string
  placed: string
  lampId: string
  state: string
}

/** A person with an account at the shop. */
export interface Customer {
  /** Customer id of the shop, used as the assertion's subject. */
  id: string
  name: string
  town: string
  plan: string
  orders: Order[]
}

/** Accounts of the demo shop. Signing in needs no password. */
export const customers: readonly Customer[] = [
  {
    id: 'customer_1042',
    name: 'Ada Berger',
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
    town: 'Malmö',
    plan: 'Customer',
    orders: [{ number: 'NL-2304', placed: '18 November 2026', lampId: 'myr', state: 'Sent, arrives on Monday' }],
  },
  { id: 'customer_1190', name: 'Mei Tanaka', town: 'Rotterdam', plan: 'Customer', orders: [] },
]

export const findCustomer = (id: string | null | undefined): Customer | undefined =>
  customers.find((customer) => customer.id === id)
