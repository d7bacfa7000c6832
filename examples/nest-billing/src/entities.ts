/** The books of the service. */
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One charge of one order. No unique index keeps it from being there twice: that is the guard's part. */
@Entity()
export class Charge {
  @PrimaryColumn('text') id!: string;
  @Column('text') order!: string;
  @Column('integer') cents!: number;
  /** The instant of the settlement that has it. */
  @Column('text', { nullable: true }) settledBy!: string | null;
}

/** What one settlement paid out. */
@Entity()
export class Settlement {
  @PrimaryColumn('text') id!: string;
  @Column('text') instant!: string;
  @Column('integer') cents!: number;
  @Column('text') node!: string;
}

/** A balance. */
@Entity()
export class Account {
  @PrimaryColumn('text') id!: string;
  @Column('integer') cents!: number;
}
