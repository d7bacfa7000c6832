/** The application. */
import { GuardExceptionFilter, GuardHealthIndicator, GuardModule } from '@guard/nestjs';
import { Body, Controller, Get, Module, type OnApplicationShutdown, Post } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { databaseOptions, guardOptions, redis } from './backends.js';
import { Billing, type Order, type Receipt } from './billing.js';

@Controller()
class BillingController {
  constructor(
    private readonly billing: Billing,
    private readonly health: HealthCheckService,
    private readonly guard: GuardHealthIndicator,
  ) {}

  @Post('charge')
  charge(@Body() order: Order): Promise<Receipt> {
    return this.billing.charge(order);
  }

  @Post('transfer')
  transfer(
    @Body() wish: { readonly from: string; readonly to: string; readonly cents: number },
  ): Promise<void> {
    return this.billing.transfer(wish.from, wish.to, wish.cents);
  }

  @Get('health')
  @HealthCheck()
  check(): Promise<unknown> {
    return this.health.check([() => this.guard.check('guard')]);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot(databaseOptions(false)),
    ScheduleModule.forRoot(),
    TerminusModule,
    GuardModule.forRootAsync({ inject: [getDataSourceToken()], useFactory: guardOptions }),
  ],
  controllers: [BillingController],
  providers: [Billing, { provide: APP_FILTER, useClass: GuardExceptionFilter }],
})
export class AppModule implements OnApplicationShutdown {
  /** Guard has closed in the hook before this one. */
  onApplicationShutdown(): void {
    redis?.disconnect();
  }
}
