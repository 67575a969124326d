! A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, as a program that is run once per row:
! theta on standard input, the seed in the environment, x on standard output.
!
!     gfortran -O2 -o line_f90 line.f90
program line
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  real(dp) :: shift, slope, u(2), x(3)
  integer, allocatable :: state(:)
  integer :: seed, j, n
  character(len=32) :: text

  read (*, *) shift, slope
  call get_environment_variable('NREC_SEED', text)
  read (text, *) seed
  call random_seed(size=n)
  allocate (state(n))
  state = seed + 37 * [(j, j = 1, n)]
  call random_seed(put=state)
  do j = 1, 3
    call random_number(u)
    x(j) = shift + slope * (j - 2) + 0.5_dp * sqrt(-2 * log(1 - u(1))) * cos(8 * atan(1.0_dp) * u(2))
  end do
  write (*, '(3es25.16e3)') x
end program line
